'use client'

import { useEffect, useState } from 'react'

export default function Tides() {
  const [rows, fill] = useState([])
  useEffect(() => {
    fetch('/tides.json').then((answer) => answer.json()).then(fill)
  }, [])
  return (
    <table>
      <thead><tr><th>Water</th><th>Hour</th></tr></thead>
      <tbody>{rows.map(({ water, hour }) => <tr key={hour}><td>{water}</td><td>{hour}</td></tr>)}</tbody>
    </table>
  )
}
