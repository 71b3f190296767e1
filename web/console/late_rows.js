// Completes the rows of a table whose values were not found in time: their cells become what the server finds when it
// looks again, for these rows first. Nothing else on the page changes, so that what is ticked or typed stays.

import { localize } from './times.js';

/** Times between attempts. There are few, because each makes the server search again. */
const PAUSES_MS = [1000, 2000, 4000, 8000, 16000];
const ANSWER_MS_MAX = 10000;

const note = document.getElementById('late');

function lateRows() {
  return [...document.querySelectorAll('tr[data-late]')];
}

function say(what) {
  const count = lateRows().length;
  note.textContent = `The uplinks of ${count} ${count === 1 ? 'device' : 'devices'} were not found ${what}`;
}

/** The page as the server shows it now. */
async function look() {
  const address = new URL(location.href);
  for (const row of lateRows()) address.searchParams.append('late', row.dataset.key);
  const response = await fetch(address, {
    cache: 'no-store',
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  });
  if (!response.ok) throw new Error(response.statusText);
  return new DOMParser().parseFromString(await response.text(), 'text/html');
}

/** Completes the rows that are complete on this page. */
function complete(page) {
  const found = new Map([...page.querySelectorAll('tr[data-key]')].map((row) => [row.dataset.key, row]));
  for (const row of lateRows()) {
    const now = found.get(row.dataset.key);
    if (now === undefined || 'late' in now.dataset) continue;
    for (const time of now.querySelectorAll('time[datetime]')) localize(time);
    const cells = new Map([...now.querySelectorAll('[data-label]')].map((cell) => [cell.dataset.label, cell]));
    for (const cell of row.querySelectorAll('[data-label]')) cell.replaceWith(cells.get(cell.dataset.label) ?? cell);
    delete row.dataset.late;
  }
}

async function run() {
  for (const pause of PAUSES_MS) {
    say('yet: looking again…');
    await new Promise((resolve) => setTimeout(resolve, pause));
    try {
      complete(await look());
    } catch {
      // The next attempt may get an answer.
    }
    if (lateRows().length === 0) {
      note.textContent = 'The uplinks of all devices were found.';
      return;
    }
  }
  say('in time, or are too large for this page: reload it to look again, or open the device.');
}

run();
