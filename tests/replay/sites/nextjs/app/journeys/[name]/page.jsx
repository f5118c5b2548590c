import { Board } from './board'

const JOURNEYS = {
  north: { hours: 3, text: 'Past the skerries, with the wind behind.' },
  south: { hours: 2, text: 'Along the mainland, under the cliffs.' },
}

export const dynamicParams = false

export function generateStaticParams() {
  return Object.keys(JOURNEYS).map((name) => ({ name }))
}

export async function generateMetadata({ params }) {
  return { title: `Journey ${(await params).name}` }
}

export default async function Journey({ params }) {
  const { name } = await params
  const { hours, text } = JOURNEYS[name]
  return (
    <article>
      <h1>Journey {name}</h1>
      <p>{text} It takes {hours} hours.</p>
      <Board name={name} />
    </article>
  )
}
