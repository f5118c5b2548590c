import DefaultTheme from 'vitepress/theme'
import { defineAsyncComponent } from 'vue'

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Thallus', defineAsyncComponent(() => import('./Thallus.vue')))
  },
}
