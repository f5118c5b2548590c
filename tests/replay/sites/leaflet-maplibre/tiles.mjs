// Draws the tiles of the map: a sea whose colour follows longitude and latitude, with a frame around each tile.
import { mkdirSync, writeFileSync } from 'node:fs'
import { crc32, deflateSync } from 'node:zlib'

const SIZE = 256

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind), data])
  const whole = Buffer.alloc(body.length + 8)
  whole.writeUInt32BE(data.length)
  body.copy(whole, 4)
  whole.writeUInt32BE(crc32(body), body.length + 4)
  return whole
}

function tile(zoom, column, row) {
  const lines = Buffer.alloc((SIZE * 3 + 1) * SIZE)
  for (let y = 0; y < SIZE; y += 1) {
    for (let x = 0; x < SIZE; x += 1) {
      const at = y * (SIZE * 3 + 1) + 1 + x * 3
      const framed = x === 0 || y === 0
      const east = (column + x / SIZE) / 2 ** zoom
      const south = (row + y / SIZE) / 2 ** zoom
      lines[at] = framed ? 120 : 140 + Math.floor(80 * Math.sin(40 * east) ** 2)
      lines[at + 1] = framed ? 150 : 190 + Math.floor(50 * Math.cos(40 * south) ** 2)
      lines[at + 2] = framed ? 170 : 235
    }
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(SIZE, 0)
  head.writeUInt32BE(SIZE, 4)
  head.set([8, 2, 0, 0, 0], 8)
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([start, chunk('IHDR', head), chunk('IDAT', deflateSync(lines)), chunk('IEND', Buffer.alloc(0))])
}

for (const [zoom, columns, rows] of [[4, [5, 11], [2, 8]], [5, [12, 20], [6, 14]]]) {
  for (let column = columns[0]; column <= columns[1]; column += 1) {
    mkdirSync(`tiles/${zoom}/${column}`, { recursive: true })
    for (let row = rows[0]; row <= rows[1]; row += 1) writeFileSync(`tiles/${zoom}/${column}/${row}.png`, tile(zoom, column, row))
  }
}
