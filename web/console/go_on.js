// Work in parts goes on by itself: sends the form that begins the next part. Whoever stops it leaves the page.

const form = document.querySelector('form[data-goes-on]');

// Not for a page that comes back, such as with the browser's back button: that part was sent before.
const [{ type }] = performance.getEntriesByType('navigation');
if (type === 'navigate') form.requestSubmit(form.querySelector('button'));
