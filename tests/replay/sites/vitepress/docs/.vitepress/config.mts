import { defineConfig } from 'vitepress'

export default defineConfig({
  title: 'Lichen',
  description: 'A field guide to lichens, as a site of VitePress.',
  cleanUrls: true,
  lastUpdated: false,
  themeConfig: {
    logo: '/lichen.svg',
    search: { provider: 'local' },
    nav: [
      { text: 'Guide', link: '/guide/forms', activeMatch: '/guide/' },
      { text: 'Counter', link: '/counter' },
    ],
    sidebar: {
      '/guide/': [
        {
          text: 'Guide',
          items: [
            { text: 'Growth forms', link: '/guide/forms' },
            { text: 'Chemistry', link: '/guide/chemistry' },
            { text: 'Keys', link: '/guide/keys' },
          ],
        },
      ],
    },
    outline: 'deep',
    footer: { message: 'Made for tests.', copyright: 'No rights reserved' },
  },
})
