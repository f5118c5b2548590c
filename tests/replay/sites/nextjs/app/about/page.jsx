export const metadata = { title: 'About' }

export default function About() {
  return (
    <>
      <h1>About</h1>
      <p>A site of tests.</p>
    </>
  )
}
