// Ids of applications and devices.

const PATTERN = /^[0-9a-z](?:[_-]?[0-9a-z]){1,35}$/;
const LENGTH_MAX = 36;

/** Throws unless `id` is the id of a `what`. */
export function checkId(what, id) {
  if (typeof id !== "string" || id.length > LENGTH_MAX || !PATTERN.test(id)) {
    throw new TypeError(
      `${what} \`${String(id)}\` not valid: must have 2 to ${LENGTH_MAX} lowercase letters, digits, and single dashes ` +
        "or underscores between them",
    );
  }
}
