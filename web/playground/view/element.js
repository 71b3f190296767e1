// Makes elements. Whatever codecs return gets into the page as text, never as markup.

/** Characters that are invisible, or turn the direction of what follows: shown by their numbers. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff]/g;

/** A text in which nothing hides. */
export function shown(text) {
  return text.replace(HIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** An element with attributes, properties that begin with `on`, and children: elements and texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute.startsWith("on")) made[attribute] = value;
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(attribute, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null).map((child) => (typeof child === "string" ? shown(child) : child)));
  return made;
}

/** A number with a comma after each thousand, as the console and the documentation write it. */
export function grouped(number) {
  return number.toLocaleString("en");
}

/** Compact JSON, or its beginning, with a space after each comma between values, where lines may break. */
export function spaced(json) {
  return json.replace(/"(?:[^"\\]|\\.)*"?|,/g, (part) => (part === "," ? ", " : part));
}

/** A number of things, in words. */
export function counted(count, what) {
  return `${grouped(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** A number of bytes, to be read by people. */
export function inBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1 << 20 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

/** A labelled meter of what was used of a limit. */
export function meter(name, used, max, text) {
  const id = `meter-${name.toLowerCase().replace(/\W+/g, "-")}`;
  const bar = element("meter", { id, min: "0", max: String(max), high: String(max * 0.9), value: String(used) }, text);
  return element("div", {}, element("label", { for: id }, `${name} `, element("output", {}, text)), bar);
}

/** Lets arrow keys move between the items of a list that has one stop for Tab. */
export function rove(container, selector) {
  const items = () => [...container.querySelectorAll(selector)];
  items().forEach((item, index) => (item.tabIndex = index === 0 ? 0 : -1));
  container.onkeydown = (event) => {
    const all = items();
    const at = all.indexOf(event.target.closest(selector));
    const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || next === undefined || all[next] === undefined) return;
    event.preventDefault();
    // The stop may be elsewhere: a click moves only the focus.
    for (const item of all) item.tabIndex = item === all[next] ? 0 : -1;
    all[next].focus();
  };
}
