import * as THREE from 'three'
import { OrbitControls } from 'three/addons/controls/OrbitControls.js'
import { OBJLoader } from 'three/addons/loaders/OBJLoader.js'

const shown = document.getElementById('shown')
const renderer = new THREE.WebGLRenderer({ antialias: false, preserveDrawingBuffer: true })
renderer.setSize(innerWidth, innerHeight)
document.body.append(renderer.domElement)

const scene = new THREE.Scene()
scene.background = new THREE.Color('#22304a')
scene.add(new THREE.HemisphereLight('#ffffff', '#445566', 2))
const sun = new THREE.DirectionalLight('#ffffff', 2)
sun.position.set(3, 5, 4)
scene.add(sun)
const camera = new THREE.PerspectiveCamera(45, innerWidth / innerHeight, 0.1, 100)
camera.position.set(3, 2.5, 4)
const controls = new OrbitControls(camera, renderer.domElement)
controls.target.set(0, 0.5, 0)
controls.update()

const texture = await new THREE.TextureLoader().loadAsync('/tiles.svg')
texture.colorSpace = THREE.SRGBColorSpace
const material = new THREE.MeshStandardMaterial({ map: texture, roughness: 0.6 })
const house = await new OBJLoader().loadAsync('/house.obj')
house.traverse((part) => { if (part.isMesh) part.material = material })
scene.add(house)

const draw = () => renderer.render(scene, camera)
controls.addEventListener('change', draw)
if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
  renderer.setAnimationLoop(() => { house.rotation.y += 0.01; draw() })
}
draw()
shown.textContent = 'a house'

document.getElementById('next').addEventListener('click', async () => {
  shown.textContent = '…'
  const { ParametricGeometry } = await import('three/addons/geometries/ParametricGeometry.js')
  const { klein } = await import('/surfaces.js')
  scene.remove(house)
  scene.add(new THREE.Mesh(new ParametricGeometry(klein, 48, 48), material))
  material.side = THREE.DoubleSide
  draw()
  shown.textContent = 'a bottle'
})
