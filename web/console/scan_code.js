// Reads the QR code of a device with the camera, in browsers that can: its text goes into the field, as if it was pasted.

const INTERVAL_MS = 200;

const part = document.getElementById('scan');
const button = part.querySelector('button');
const state = part.querySelector('[role=status]');
const video = part.querySelector('video');
const field = document.getElementById('qr');
const label = button.textContent;

let stream;

function stop(text) {
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream = undefined;
  video.srcObject = null;
  video.hidden = true;
  button.textContent = label;
  state.textContent = text;
}

async function look(detector, own) {
  // It fails until there is a picture.
  const [code] = await detector.detect(video).catch(() => []);
  // It was stopped meanwhile, and may have been started again.
  if (stream !== own) return;
  if (code) {
    field.value = code.rawValue;
    stop('The code was read.');
    field.focus();
    return;
  }
  setTimeout(look, INTERVAL_MS, detector, own);
}

async function start() {
  button.disabled = true;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } });
  } catch {
    stop('The camera cannot be used. Allow it for this page, or paste the text of the code.');
    return;
  } finally {
    button.disabled = false;
  }
  for (const track of stream.getTracks()) track.addEventListener('ended', () => stop('The camera has stopped.'));
  video.srcObject = stream;
  video.hidden = false;
  button.textContent = 'Stop';
  state.textContent = 'Hold the code in front of the camera.';
  look(new BarcodeDetector({ formats: ['qr_code'] }), stream);
}

button.addEventListener('click', () => (stream ? stop('') : start()));
addEventListener('pagehide', () => stop(''));
// A page that is left open must not film for days.
document.addEventListener('visibilitychange', () => {
  if (document.hidden && stream) stop('The camera is off.');
});

const canScan = 'BarcodeDetector' in window && navigator.mediaDevices !== undefined;
if (canScan && (await BarcodeDetector.getSupportedFormats()).includes('qr_code')) part.hidden = false;
