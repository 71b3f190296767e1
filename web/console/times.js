// Shows times in the reader's own time zone. The exact one is in the title.

const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export function localize(element) {
  const time = new Date(element.dateTime);
  if (Number.isNaN(time.getTime())) return;
  element.title = element.dateTime;
  element.textContent = format.format(time);
}

for (const element of document.querySelectorAll('time[datetime]')) localize(element);
