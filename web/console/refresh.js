// Keeps a page up to date: the part with the id `refreshed` becomes what the server would show now. Only what differs is
// changed, so that focus, selection and scroll positions stay. Rows and parts that may come and go have a `data-key` or an
// `id`.

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
  // People open and close them.
  const isOurs = (name) => name !== 'open' || old.nodeName !== 'DETAILS';
  for (const { name, value } of [...now.attributes]) {
    if (isOurs(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (isOurs(name) && !now.hasAttribute(name)) old.removeAttribute(name);
  }
}

/** What a node has in common with the same one of another moment: its key, or else only its kind. */
function identity(node) {
  return `${node.nodeName} ${node.dataset?.key ?? node.id ?? ''}`;
}

/** Moves a node, if the browser can, with the focus and the scroll positions in it. */
function put(parent, node, next) {
  if (node.parentNode === parent && parent.moveBefore) parent.moveBefore(node, next);
  else parent.insertBefore(node, next);
}

/** Nodes with the same key become each other wherever they are; those without one follow each other in their order. */
function followChildren(old, now) {
  const before = Map.groupBy(old.childNodes, identity);
  const pairs = [...now.childNodes].map((child) => [before.get(identity(child))?.shift(), child]);
  for (const gone of [...before.values()].flat()) gone.remove();
  let next = old.firstChild;
  for (const [same, child] of pairs) {
    if (same !== undefined) follow(same, child);
    if (same !== undefined && same === next) next = next.nextSibling;
    else put(old, same ?? child, next);
  }
}

function follow(old, now) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  followAttributes(old, now);
  followChildren(old, now);
}

/** Shows what the server shows now. If that no longer has what had the focus, what was around it gets it. */
function update(now) {
  const focused = document.activeElement;
  const around = [];
  for (let element = focused; part.contains(element); element = element.parentElement) around.push(element);
  follow(part, now);
  if (around.length === 0 || document.activeElement === focused) return;
  const left = around.find((element) => part.contains(element) && element.matches('a, button, input, summary, [tabindex]'));
  left?.focus({ preventScroll: true });
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
  if (!isPaused) update(now);
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
