export default {
  stories: ['../stories/*.stories.js'],
  framework: { name: '@storybook/html-vite', options: {} },
  core: { disableTelemetry: true, disableWhatsNewNotifications: true },
}
