import Link from 'next/link'
import './style.css'

export const metadata = { title: { default: 'Ferries', template: '%s · Ferries' }, description: 'An export of Next.js.' }

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <header>
          <Link href="/" className="mark">Ferries</Link>
          <nav>
            <Link href="/journeys/north/">North</Link>
            <Link href="/journeys/south/">South</Link>
            <Link href="/about/">About</Link>
          </nav>
        </header>
        <main>{children}</main>
      </body>
    </html>
  )
}
