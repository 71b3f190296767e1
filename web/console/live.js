// The live view: rows as messages arrive. The page keeps a bounded number of rows, and while it is paused, a bounded
// number of messages; it says how many it skipped.

import { localize } from './times.js';

const ROWS_MAX = 200;

const view = document.getElementById('live');
const rows = view.querySelector('tbody');
const state = document.getElementById('state');
const skippedText = document.getElementById('skipped');
const controls = document.getElementById('controls');
const pause = document.getElementById('pause');
const older = document.getElementById('older');
const application = view.dataset.application;

let waiting = [];
let skipped = 0;
/** True if history has messages that belong between the rows, or above them. */
let hasGap = false;
let isPaused = false;

function cell(row, text, className) {
  const cell = row.insertCell();
  if (className) cell.className = className;
  // Text, never HTML: whatever a device or a function has written stays what it is.
  cell.append(text);
  return cell;
}

function link(path, content) {
  const link = document.createElement('a');
  link.href = path;
  link.append(content);
  return link;
}

function badge(className, text) {
  const badge = document.createElement('span');
  badge.className = className;
  badge.append(text);
  return badge;
}

/** A link to the same message in history: what was kept in the seconds around its time. */
function when(message) {
  const time = document.createElement('time');
  time.dateTime = message.time;
  time.append(message.time);
  localize(time);
  const known = new Date(message.time).getTime();
  const around = (milliseconds) => new Date(known + milliseconds).toISOString();
  const query = new URLSearchParams({ device: message.device, since: around(-1000), until: around(1000) });
  return link(`${application}/messages?${query}`, time);
}

function show(message) {
  const row = rows.insertRow(0);
  if (message.failed) row.className = 'failed';
  cell(row, when(message), 'when');
  cell(row, link(`${application}/devices/${encodeURIComponent(message.device)}`, message.device), 'id');
  const kind = cell(row, message.kind, 'kind');
  if (message.simulated) kind.append(' ', badge('badge', 'simulated'));
  if (message.port === null) cell(row, '');
  else cell(row, message.port, 'number').dataset.label = 'Port';
  cell(row, message.payload, 'mono');
  const result = cell(row, '', 'mono wide');
  if (message.failed) result.append(badge('badge bad', 'failed'), ' ');
  result.append(message.text);
}

function skip(count) {
  if (count === 0) return;
  skipped += count;
  skippedText.hidden = false;
  skippedText.textContent = `${skipped} messages were skipped because too many arrived at once. They are under All messages.`;
  leaveGap();
}

function leaveGap() {
  hasGap = true;
  continueInHistory();
}

function take(messages) {
  if (isPaused) {
    waiting.push(...messages);
    skip(Math.max(0, waiting.length - ROWS_MAX));
    waiting = waiting.slice(-ROWS_MAX);
    pause.textContent = `Resume (${waiting.length} waiting)`;
    return;
  }
  for (const message of messages.slice(-ROWS_MAX)) show(message);
  while (rows.rows.length > ROWS_MAX) rows.deleteRow(-1);
  continueInHistory();
}

/** History goes on where the page ends, or begins with the newest message if some are missing on the page. */
function continueInHistory() {
  const oldest = rows.rows[rows.rows.length - 1]?.querySelector('time');
  const url = new URL(older.href);
  if (oldest && !hasGap) url.searchParams.set('until', oldest.dateTime);
  else url.searchParams.delete('until');
  older.href = url.pathname + url.search;
  older.textContent = hasGap ? 'All messages' : 'Older messages';
}

pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? 'Resume' : 'Pause';
  if (!isPaused) {
    const kept = waiting;
    waiting = [];
    take(kept);
  }
});

document.getElementById('clear').addEventListener('click', () => {
  rows.replaceChildren();
  skipped = 0;
  skippedText.hidden = true;
  hasGap = false;
  continueInHistory();
});

const events = new EventSource(view.dataset.events);
let wasOpen = false;
events.addEventListener('open', () => {
  state.textContent = wasOpen
    ? 'Reconnected. Messages that arrived meanwhile are under All messages.'
    : 'Messages appear here as they arrive.';
  if (wasOpen) leaveGap();
});
events.addEventListener('message', (event) => {
  const batch = JSON.parse(event.data);
  skip(batch.skipped);
  take(batch.messages);
});
events.addEventListener('end', () => {
  events.close();
  state.textContent = 'The connection has ended. Reload the page to continue.';
});
events.addEventListener('error', () => {
  if (events.readyState === EventSource.CLOSED) {
    state.textContent = 'The server refused the connection. Reload the page to see why.';
  } else {
    wasOpen = true;
    state.textContent = 'Connection lost. Reconnecting…';
  }
});
view.hidden = false;
controls.hidden = false;
