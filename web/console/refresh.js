// Keeps a page up to date: the part with the id `refreshed` becomes what the server would show now. Only what differs is
// changed, so that focus, selection and scroll positions stay.

import { localize } from './times.js';

const INTERVAL_MS = 5000;
const ANSWER_MS_MAX = 10000;

const control = document.getElementById('refresh');
const pause = control.querySelector('button');
const state = control.querySelector('[role=status]');
const part = document.getElementById('refreshed');

let isPaused = false;

function updating() {
  say(isPaused ? 'Paused.' : 'Updated every 5 seconds.');
}

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

function followAttributes(old, now) {
  for (const { name, value } of [...now.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name)) old.removeAttribute(name);
  }
}

function follow(old, now) {
  if (old.nodeName !== now.nodeName) {
    old.replaceWith(now);
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
  } else {
    followAttributes(old, now);
    const before = [...old.childNodes];
    const after = [...now.childNodes];
    after.forEach((child, place) => (place < before.length ? follow(before[place], child) : old.append(child)));
    for (const child of before.slice(after.length)) child.remove();
  }
}

/** Asks for the page; false if there is none for this viewer any more. */
async function refresh() {
  const response = await fetch(location.href, {
    cache: 'no-store',
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  });
  // Only the login redirects.
  if (response.type === 'opaqueredirect' || response.status === 404) return false;
  if (!response.ok) throw new Error(response.statusText);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const now = page.getElementById('refreshed');
  for (const element of now.querySelectorAll('time[datetime]')) localize(element);
  // Somebody may have paused it meanwhile.
  if (!isPaused) follow(part, now);
  return true;
}

async function run() {
  if (!isPaused && !document.hidden) {
    try {
      if (!(await refresh())) {
        pause.hidden = true;
        return say('This page is no longer updated: reload it to log in again.');
      }
      updating();
    } catch {
      if (!isPaused) say('The server does not answer. Trying again…');
    }
  }
  setTimeout(run, INTERVAL_MS);
}

pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? 'Resume' : 'Pause';
  updating();
});

control.hidden = false;
updating();
setTimeout(run, INTERVAL_MS);
