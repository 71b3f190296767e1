// Puts the text of a chosen file into the field that is sent. Without scripts, people paste it there.

function encoding(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
}

async function read(input) {
  const [file] = input.files;
  const tooLarge = Boolean(file) && file.size > Number(input.dataset.bytesMax);
  document.getElementById(`${input.id}-wrong`).hidden = !tooLarge;
  if (!file || tooLarge) return;
  const bytes = new Uint8Array(await file.arrayBuffer());
  document.getElementById(input.dataset.into).value = new TextDecoder(encoding(bytes)).decode(bytes);
}

for (const input of document.querySelectorAll('input[type=file][data-into]')) {
  input.addEventListener('change', () => read(input));
  input.parentElement.hidden = false;
}
