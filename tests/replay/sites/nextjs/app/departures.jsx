'use client'

import dynamic from 'next/dynamic'
import { useEffect, useState } from 'react'

const Tides = dynamic(() => import('./tides'), { ssr: false, loading: () => <p>The tides are loading…</p> })

export function Departures({ harbours }) {
  const [chosen, choose] = useState(harbours[0])
  const [hydrated, hydrate] = useState(false)
  useEffect(() => hydrate(true), [])
  return (
    <section>
      {harbours.map((one) => (
        <button key={one} type="button" aria-pressed={one === chosen} onClick={() => choose(one)}>{one}</button>
      ))}
      <p>From {chosen}{hydrated ? ', shown by script' : ''}</p>
      <Tides />
    </section>
  )
}
