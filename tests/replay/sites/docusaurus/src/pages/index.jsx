import BrowserOnly from '@docusaurus/BrowserOnly'
import Link from '@docusaurus/Link'
import Layout from '@theme/Layout'
import { useState } from 'react'

function Counter() {
  const [boats, count] = useState(0)
  return <button className="button button--secondary" type="button" onClick={() => count(boats + 1)}>{boats} boats</button>
}

export default function Home() {
  return (
    <Layout title="Home">
      <header className="hero hero--primary">
        <div className="container">
          <h1 className="hero__title">Harbour</h1>
          <p className="hero__subtitle">Where boats are tied up</p>
          <Link className="button button--secondary" to="/docs/intro">Come in</Link>{' '}
          <BrowserOnly fallback={<span>…</span>}>{() => <Counter />}</BrowserOnly>
        </div>
      </header>
    </Layout>
  )
}
