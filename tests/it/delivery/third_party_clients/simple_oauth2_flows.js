// simple-oauth2 does the code, refresh and password flows, and revokes what it got.
//
// Arguments: the address of the account service, the secret of the client, the password of alice.
// Prints where a browser must go, and reads where the browser was sent back to.

const assert = require("node:assert");
const readline = require("node:readline/promises");
const { AuthorizationCode, ResourceOwnerPassword } = require("simple-oauth2");

const [base, secret, password] = process.argv.slice(2);
const redirect_uri = "https://third-party.example/callback";
const client = { id: "third-party", secret };
const auth = { tokenHost: base, tokenPath: "/users/token", revokePath: "/users/revoke" };

async function checkIsAlice(token) {
  const headers = { authorization: `Bearer ${token.token.access_token}` };
  const answer = await fetch(`${base}/api/v2/users/me`, { headers });
  assert.equal(answer.status, 200);
  assert.equal((await answer.json()).username, "alice");
}

async function main() {
  const codes = new AuthorizationCode({ client, auth: { ...auth, authorizePath: "/users/authorize" } });
  console.log(codes.authorizeURL({ redirect_uri, scope: ["apps", "profile"], state: "xyz" }));
  const lines = readline.createInterface({ input: process.stdin });
  const [redirected] = await require("node:events").once(lines, "line");
  lines.close();
  const answer = new URL(redirected).searchParams;
  assert.equal(answer.get("state"), "xyz");
  const token = await codes.getToken({ code: answer.get("code"), redirect_uri });
  await checkIsAlice(token);

  const fresh = await token.refresh();
  assert.notEqual(fresh.token.refresh_token, token.token.refresh_token);
  await checkIsAlice(fresh);
  await fresh.revoke("refresh_token");
  await assert.rejects(fresh.refresh());

  const owner = new ResourceOwnerPassword({ client, auth });
  await checkIsAlice(await owner.getToken({ username: "alice", password, scope: "apps profile" }));
  console.log("done");
}

main();
