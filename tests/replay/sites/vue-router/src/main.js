import { createApp } from 'vue'
import { createRouter, createWebHistory } from 'vue-router'
import App from './App.vue'
import './style.css'

const routes = [
  { path: '/', component: () => import('./views/Home.vue') },
  { path: '/trees/:name', component: () => import('./views/Tree.vue'), props: true },
  { path: '/:rest(.*)*', component: () => import('./views/Missing.vue') },
]

createApp(App).use(createRouter({ history: createWebHistory(), routes })).mount('#app')
