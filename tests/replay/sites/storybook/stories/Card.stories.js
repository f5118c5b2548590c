export default {
  title: 'Parts/Card',
  render: ({ heading, text }) => `<div class="card"><h2>${heading}</h2><p>${text}</p></div>`,
  args: { heading: 'A card', text: 'It is shown in a frame of its own.' },
}

export const Short = {}

export const Long = { args: { heading: 'A long card', text: 'One sentence after another. '.repeat(12) } }
