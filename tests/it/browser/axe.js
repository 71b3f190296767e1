// Says what axe finds wrong with the page: the rule, the element, and why. It runs behind axe's own source.
const found = ({ id, nodes }) => nodes.map(({ html, any, all, none }) => {
    const reasons = [...any, ...all, ...none].map(check => check.message);
    return `axe ${id}: ${html.slice(0, 120)}: ${reasons.join("; ")}`;
});
// A table may have the name of its section, and sections of reports have tables of the same name.
const rules = { "landmark-unique": { enabled: false } };
return axe.run({ resultTypes: ["violations"], rules }).then(({ violations }) => violations.flatMap(found));
