// Sends a form once: a second click would take the place of the answer to the first, which brings devices back.

for (const form of document.querySelectorAll('form[data-once]')) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.once) event.preventDefault();
    form.dataset.once = 'sent';
  });
}

// A page that the browser has kept can be sent again.
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll('form[data-once]')) form.dataset.once = '';
});
