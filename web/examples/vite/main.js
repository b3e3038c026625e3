import { Oriel } from 'oriel';

const form = document.querySelector('form');
const reply = document.querySelector('#reply');
const status = document.querySelector('#status');

async function main() {
  const model = await Oriel.load('model.gguf', { memory: '40MB' });
  const chat = model.session();
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    reply.textContent = '';
    for await (const piece of chat.reply(form.question.value)) reply.append(piece);
    status.textContent = 'Done';
  });
  status.textContent = `Ready, ${model.threads} threads`;
}

main().catch((error) => (status.textContent = error.message));
