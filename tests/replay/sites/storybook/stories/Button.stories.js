import { fn } from 'storybook/test'

export default {
  title: 'Parts/Button',
  tags: ['autodocs'],
  argTypes: { plain: { control: 'boolean' }, label: { control: 'text' } },
  args: { onClick: fn() },
  render: ({ label, plain, onClick }) => {
    const button = document.createElement('button')
    button.className = plain ? 'button button--plain' : 'button'
    button.textContent = label
    button.addEventListener('click', onClick)
    return button
  },
}

export const Filled = { args: { label: 'A filled one' } }

export const Plain = { args: { label: 'A plain one', plain: true } }
