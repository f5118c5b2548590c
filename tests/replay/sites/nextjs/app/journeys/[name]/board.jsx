'use client'

import { usePathname, useSearchParams } from 'next/navigation'
import { Suspense } from 'react'

function Query() {
  return <em>{useSearchParams().get('class') ?? 'any class'}</em>
}

export function Board({ name }) {
  return (
    <p className="board">
      {name} at {usePathname()}, <Suspense fallback="…"><Query /></Suspense>
    </p>
  )
}
