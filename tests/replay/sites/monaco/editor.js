require.config({ paths: { vs: '/node_modules/monaco-editor/min/vs' } })

const shown = document.getElementById('shown')

function told(model) {
  return new Promise((resolve) => {
    const look = () => {
      const found = monaco.editor.getModelMarkers({ resource: model.uri })
      if (found.length) resolve(found.map((one) => one.message).join('; '))
      return found.length
    }
    const listening = monaco.editor.onDidChangeMarkers(() => look() && listening.dispose())
    look()
  })
}

require(['vs/editor/editor.main'], async () => {
  const script = monaco.editor.createModel('const height: number = "tall"\n\nexport function lit(hours: number): boolean {\n  return hours > 18\n}\n', 'typescript', monaco.Uri.parse('file:///light.ts'))
  const editor = monaco.editor.create(document.getElementById('editor'), { model: script, minimap: { enabled: true }, cursorBlinking: 'solid', smoothScrolling: false, automaticLayout: true })
  shown.textContent = await told(script)
  document.getElementById('json').addEventListener('click', async () => {
    shown.textContent = '…'
    const data = monaco.editor.createModel('{\n  "light": "Skerry",\n  "height": 31,\n}\n', 'json', monaco.Uri.parse('file:///light.json'))
    editor.setModel(data)
    shown.textContent = await told(data)
  })
})
