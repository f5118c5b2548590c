import Image from 'next/image'
import Link from 'next/link'
import { Departures } from './departures'

export default function Home() {
  return (
    <>
      <Image src="/ferry.svg" alt="A ferry" width={160} height={80} priority />
      <h1>Two ferries cross the sound</h1>
      <Departures harbours={['Northhaven', 'Southhaven', 'Mill Quay']} />
      <p><Link href="/journeys/north/" id="north">The journey north</Link></p>
    </>
  )
}
