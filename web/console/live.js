// The live view: rows as messages arrive. The page keeps a bounded number of rows, and while it is paused, a bounded
// number of messages; it says how many it skipped.

import { localize } from './times.js';

const ROWS_MAX = 200;
/** The first wait before another attempt to connect, and the longest. */
const WAIT_MS = 1000;
const WAIT_MAX_MS = 30_000;
const ANSWER_MAX_MS = 10_000;

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
let events;
/** True if the connection was lost since the page was opened. */
let wasLost = false;
/** Attempts to connect since the last one that succeeded. */
let attempts = 0;

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
  const query = new URLSearchParams({ device: message.device, since: around(-1000), until: around(1000), changes: 1 });
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

function opened() {
  state.textContent = wasLost
    ? 'Reconnected. Messages that arrived meanwhile are under All messages.'
    : 'Messages appear here as they arrive.';
  if (wasLost) leaveGap();
  attempts = 0;
}

function received(event) {
  const batch = JSON.parse(event.data);
  if (batch.interrupted) {
    wasLost = true;
    opened();
  }
  skip(batch.skipped);
  take(batch.messages);
}

/** Browsers open a stream again that was interrupted, but not one that was refused. */
function failed() {
  wasLost = true;
  if (events.readyState === EventSource.CLOSED) askWhy();
  else state.textContent = 'Connection lost. Reconnecting…';
}

/** A stream does not tell why it was refused, or has ended: the answer to a request does. */
async function askWhy() {
  const asking = new AbortController();
  const late = setTimeout(() => asking.abort(), ANSWER_MAX_MS);
  let status = 0;
  let why = 'The server does not answer.';
  try {
    const answer = await fetch(view.dataset.events, { cache: 'no-store', signal: asking.signal });
    status = answer.status;
    if (answer.ok) why = 'Connection lost.';
    else if (answer.headers.get('content-type')?.startsWith('text/plain')) why = await answer.text();
  } catch {
    // Nobody answers.
  }
  clearTimeout(late);
  // A stream that would be granted now is not read.
  asking.abort();
  if (status === 401) end('Your login has ended.');
  else if (status >= 400 && status < 500 && status !== 429) end(why);
  else reconnect(why);
}

/** Opens the stream again after a wait that doubles, a part of it by chance: not all pages should come at once. */
function reconnect(why) {
  wasLost = true;
  const wait = (Math.min(WAIT_MAX_MS, WAIT_MS * 2 ** attempts) * (1 + Math.random())) / 2;
  attempts += 1;
  state.textContent = `${why} Reconnecting…`;
  setTimeout(connect, wait);
}

function end(why) {
  state.textContent = `${why} Reload the page to continue. Messages that arrive until then are under All messages.`;
  leaveGap();
}

function connect() {
  events = new EventSource(view.dataset.events);
  events.addEventListener('open', opened);
  events.addEventListener('message', received);
  events.addEventListener('error', failed);
  events.addEventListener('end', () => {
    events.close();
    askWhy();
  });
  events.addEventListener('stop', () => {
    events.close();
    reconnect('The server has stopped.');
  });
}

connect();
view.hidden = false;
controls.hidden = false;
