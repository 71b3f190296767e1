// Says what is wrong with the page for somebody's eyes, ears or hands; an empty list is a good page.
const problems = [];
const root = document.documentElement;
const name = element => element.outerHTML.slice(0, 120);
// What is in a closed `details` has boxes, but nobody sees them.
const shown = element => element.checkVisibility({ checkVisibilityCSS: true });

if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll("body *")].filter(one => one.getBoundingClientRect().right > root.clientWidth + 1);
    problems.push(`scrolls sideways: ${wide.map(name).slice(0, 3).join(" ")}`);
}
if (!root.lang || !document.title) problems.push("no language or no title");
if (document.querySelectorAll("h1").length !== 1) problems.push("not one h1");
for (const landmark of ["header", "nav", "main", "footer"]) {
    if (!document.querySelector(landmark)) problems.push(`no ${landmark}`);
}
let level = 1;
for (const heading of document.querySelectorAll("main h1, main h2, main h3, main h4")) {
    const now = Number(heading.tagName[1]);
    if (now > level + 1) problems.push(`heading skips a level: ${name(heading)}`);
    level = now;
}
for (const picture of document.querySelectorAll("img:not([alt], [aria-hidden=true])")) problems.push(`no alt: ${name(picture)}`);
for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!field.ariaLabel && ![...field.labels].some(label => label.textContent.trim())) problems.push(`no label: ${name(field)}`);
}
for (const control of document.querySelectorAll("a, button, summary")) {
    if (!control.textContent.trim()) problems.push(`no name: ${name(control)}`);
}
// A label of two lines puts its field out of line with those beside it.
for (const label of document.querySelectorAll(".filter .field > label")) {
    const lines = label.getBoundingClientRect().height / parseFloat(getComputedStyle(label).lineHeight);
    if (shown(label) && lines > 1.5) problems.push(`label of several lines: ${name(label)}`);
}
const ids = [...document.querySelectorAll("[id]")].map(element => element.id);
for (const id of ids.filter((id, at) => ids.indexOf(id) !== at)) problems.push(`id twice: ${id}`);

// Large enough for a thumb: 24 pixels each way, as WCAG 2.2 has it, but for links within text.
for (const control of document.querySelectorAll("button, .button, nav a, summary, select, input:not([type=hidden])")) {
    const { width, height } = control.getBoundingClientRect();
    const tick = ["checkbox", "radio"].includes(control.type);
    if (shown(control) && !tick && (width < 24 || height < 24)) problems.push(`too small: ${name(control)}`);
}

// Contrast of text against what is behind it: 4.5 to 1.
const parse = colour => (colour.match(/[\d.]+/g) || []).map(Number);
const light = colour => {
    const [red, green, blue] = colour.slice(0, 3).map(part => part / 255)
        .map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const behind = element => {
    for (let at = element; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
};
for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!(own || element.matches("input, select")) || !shown(element) || element.disabled) continue;
    const [one, other] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) problems.push(`contrast ${ratio.toFixed(2)}: ${name(element)}`);
}
return problems;
