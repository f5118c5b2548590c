import * as maplibregl from '/node_modules/maplibre-gl/dist/maplibre-gl.mjs'

window.maplibregl = maplibregl

const style = (raster) => ({
  version: 8,
  sources: {
    sea: { type: 'raster', tiles: [`${location.origin}/tiles/{z}/{x}/{y}.png`], tileSize: 256, minzoom: 4, maxzoom: 5 },
    islands: { type: 'geojson', data: '/islands.json' },
  },
  layers: [
    ...(raster ? [{ id: 'sea', type: 'raster', source: 'sea', paint: { 'raster-fade-duration': 0 } }] : []),
    { id: 'land', type: 'fill', source: 'islands', filter: ['==', ['geometry-type'], 'Polygon'], paint: { 'fill-color': ['get', 'colour'], 'fill-opacity': 0.8 } },
    { id: 'shore', type: 'line', source: 'islands', filter: ['==', ['geometry-type'], 'Polygon'], paint: { 'line-color': '#33415c', 'line-width': 2 } },
    { id: 'lights', type: 'circle', source: 'islands', filter: ['==', ['geometry-type'], 'Point'], paint: { 'circle-radius': 6, 'circle-color': '#e63946' } },
  ],
})

function inserted(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = address
    script.onload = resolve
    script.onerror = reject
    document.head.append(script)
  })
}

const shown = document.getElementById('shown')
const place = { longitude: 5, latitude: 50, zoom: 4 }

const still = { fadeAnimation: false, zoomAnimation: false, markerZoomAnimation: false, inertia: false }
const flat = L.map('leaflet', still).setView([place.latitude, place.longitude], place.zoom)
L.tileLayer('/tiles/{z}/{x}/{y}.png', { minZoom: 4, maxZoom: 5, attribution: 'Drawn for tests' }).addTo(flat)
L.marker([52, 4]).addTo(flat).bindPopup('A lighthouse').openPopup()
await inserted('/node_modules/@maplibre/maplibre-gl-leaflet/leaflet-maplibre-gl.js')
const layer = L.maplibreGL({ style: style(false), interactive: false }).addTo(flat)

const round = new maplibregl.Map({
  container: 'maplibre', style: style(true), center: [place.longitude, place.latitude], zoom: place.zoom - 1, fadeDuration: 0, attributionControl: { compact: false },
})
round.addControl(new maplibregl.NavigationControl())
new maplibregl.Marker({ color: '#f4a261' }).setLngLat([9, 48]).addTo(round)

const idle = (map) => new Promise((resolve) => map.once('idle', resolve))
await Promise.all([idle(round), idle(layer.getMaplibreMap())])
shown.textContent = `Islands: ${round.queryRenderedFeatures({ layers: ['land'] }).length}`

document.getElementById('nearer').addEventListener('click', async () => {
  shown.textContent = '…'
  const both = [idle(round), idle(layer.getMaplibreMap())]
  flat.setZoom(place.zoom + 1)
  round.jumpTo({ zoom: place.zoom })
  await Promise.all(both)
  shown.textContent = `Nearer: ${round.queryRenderedFeatures({ layers: ['lights'] }).length} lights`
})
