window.onload = () => {
  window.ui = SwaggerUIBundle({
    urls: [
      { url: '/lighthouses.json', name: 'Lighthouses' },
      { url: '/lighthouses-draft.json', name: 'Draft' },
    ],
    dom_id: '#swagger-ui',
    deepLinking: true,
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
    plugins: [SwaggerUIBundle.plugins.DownloadUrl],
    layout: 'StandaloneLayout',
  })
}
