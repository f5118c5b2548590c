import { themes } from 'prism-react-renderer'

export default {
  title: 'Harbour',
  tagline: 'A site of Docusaurus',
  url: 'http://127.0.0.1',
  baseUrl: '/',
  favicon: 'img/buoy.svg',
  onBrokenLinks: 'throw',
  presets: [
    [
      'classic',
      {
        docs: { sidebarPath: './sidebars.js' },
        blog: { showReadingTime: true, onUntruncatedBlogPosts: 'ignore', onInlineAuthors: 'ignore' },
        theme: { customCss: './src/css/custom.css' },
      },
    ],
  ],
  themeConfig: {
    announcementBar: { id: 'tide', content: 'High water at <b>04:10</b>', isCloseable: true },
    navbar: {
      title: 'Harbour',
      logo: { alt: 'A buoy', src: 'img/buoy.svg' },
      items: [
        { type: 'docSidebar', sidebarId: 'docs', label: 'Docs' },
        { to: '/blog', label: 'Log' },
      ],
    },
    footer: { style: 'dark', links: [{ title: 'More', items: [{ label: 'Knots', to: '/docs/knots' }] }], copyright: 'Made for tests' },
    prism: { theme: themes.github, darkTheme: themes.dracula },
  },
}
