import '../stories/style.css'

export default { parameters: { layout: 'centered', controls: { expanded: true } } }
