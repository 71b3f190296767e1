// Sends a form once: a second click would take the place of the answer to the first, which brings devices back.

/** The server has given up before: a request waits for ten seconds at most, and runs for a minute, unless it is set otherwise. */
const ANSWER_MS_MAX = 75_000;

const forms = document.querySelectorAll('form[data-once]');
let timer = null;

for (const form of forms) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.once) return event.preventDefault();
    form.dataset.once = 'sent';
    clearTimeout(timer);
    timer = setTimeout(release, ANSWER_MS_MAX);
  });
}

/** Lets all forms be sent again. */
function release() {
  clearTimeout(timer);
  for (const form of forms) form.dataset.once = '';
}

// Whoever stops loading the answer, as Escape does, stays on the page. Browsers that do not say so have the timer.
globalThis.navigation?.addEventListener('navigateerror', release);

// A page that the browser has kept can be sent again.
addEventListener('pageshow', (event) => {
  if (event.persisted) release();
});
