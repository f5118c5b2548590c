export function klein(u, v, target) {
  const along = 2 * Math.PI * u
  const around = 2 * Math.PI * v
  const narrow = along < Math.PI
  const wide = (2 / 15) * (3 + 5 * Math.cos(along) * Math.sin(along)) * Math.sin(around)
  const x = (-2 / 15) * Math.cos(along) * (3 * Math.cos(around) - 30 * Math.sin(along) + (narrow ? 90 : 60) * Math.cos(along) ** 4 * Math.sin(along))
  target.set(x / 2, Math.sin(along) * 0.8 + 0.5 + 0.2 * Math.cos(around), wide)
}
