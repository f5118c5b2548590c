const player = videojs('player', { html5: { vhs: { overrideNative: true, useBandwidthFromLocalStorage: false } } })
const shown = document.getElementById('shown')

async function show(second) {
  shown.textContent = '…'
  const drawn = new Promise((resolve) => player.one('seeked', resolve))
  player.currentTime(second)
  await drawn
  const captions = Array.from(player.textTracks()).find((one) => one.kind === 'captions')
  const cue = captions.activeCues[0].getCueAsHTML().textContent
  shown.textContent = `${player.videoWidth()} by ${player.videoHeight()} at ${player.currentTime()} s: ${cue}`
}

player.one('loadeddata', () => show(1))
document.getElementById('later').addEventListener('click', () => show(6))
