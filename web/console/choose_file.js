// Puts the text of a chosen file into the field that is sent. Without scripts, people paste it there.

function encoding(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
}

// The text of a file; none if it is in another encoding, in which letters would become others unseen.
function decoded(bytes) {
  try {
    return new TextDecoder(encoding(bytes), { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

// The size as it is sent: line ends take six bytes, and quotes three.
function sentBytes(name, text) {
  return new URLSearchParams([[name, text.replace(/\r?\n/g, '\r\n')]]).toString().length;
}

async function read(input) {
  const [file] = input.files;
  if (!file) return;
  const into = document.getElementById(input.dataset.into);
  const { bytesMax, sentBytesMax } = input.dataset;
  let isLarge = file.size > Number(bytesMax);
  const text = isLarge ? '' : decoded(new Uint8Array(await file.arrayBuffer()));
  isLarge ||= text !== undefined && sentBytes(into.name, text) > Number(sentBytesMax);
  document.getElementById(`${input.id}-large`).hidden = !isLarge;
  document.getElementById(`${input.id}-unreadable`).hidden = text !== undefined;
  // Another file may have been chosen before, which nobody means any more.
  into.value = isLarge || text === undefined ? '' : text;
}

for (const input of document.querySelectorAll('input[type=file][data-into]')) {
  input.addEventListener('change', () => read(input));
  input.parentElement.hidden = false;
}
