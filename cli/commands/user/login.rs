//! `airlock user login`: with a password, with a browser, or with an access code from the account site.
//!
//! The access code is an OAuth authorization code with PKCE. The browser brings it back to this machine; or the site shows
//! it. The code verifier is saved when the URL of that page is printed, so the code can be entered at the prompt or
//! passed to a later command.

use std::env;

use anyhow::{Context, bail};
use api::rest::account::TokenResponse;
use client::{
    Error,
    account::{AuthorizationCode, CodeVerifier},
};
use types::{Credential, Kind, Kinded, Secret, Username};

use super::{args::LoginBy, loopback::Loopback};
use crate::{
    command_context::{
        CommandContext,
        session::{Client, Login, PendingLogin},
    },
    exit::CommandError,
    terminal::{PasswordSource, ask, ask_password, can_ask, sanitize, say},
};

/// The page of the account site that shows the code.
const REDIRECT_URI: &str = "/oauth/callback/airlock";
/// The page to which the site's link "Access code" leads.
const SITE_REDIRECT_URI: &str = "/oauth/callback/ttnctl";

pub(super) async fn with_password(
    context: &CommandContext,
    username: Username,
    source: PasswordSource,
) -> anyhow::Result<()> {
    let password = ask_password(source, "Password: ")?;
    let client = Client::Own.credentials()?;
    let response = context.account()?.password_token(&client, &username, &password, &[]).await;
    finish(context, Client::Own, response.map_err(refused_credential)?).await
}

/// OAuth calls a wrong password or code an invalid request; for the exit code, it is a credential that is refused.
fn refused_credential(error: Error) -> Error {
    match error {
        Error::Refused { kind: Kind::Invalid, message, retry_after } => {
            Error::Refused { kind: Kind::Unauthenticated, message, retry_after }
        }
        error => error,
    }
}

/// Logs in with a browser on this machine, which brings the code back; elsewhere, with a code that is entered.
pub(super) async fn with_browser(context: &CommandContext, is_elsewhere: bool) -> anyhow::Result<()> {
    if is_elsewhere || !can_ask() || !has_display() {
        return with_page(context).await;
    }
    let loopback = Loopback::listen(CodeVerifier::new(context.random.as_ref()).secret().expose().to_owned()).await?;
    let (verifier, client) = (CodeVerifier::new(context.random.as_ref()), Client::Own.credentials()?);
    let redirect_uri = loopback.redirect_uri();
    let mut url = context.account()?.authorize_url(&client.id, &redirect_uri, &verifier);
    loopback.add_state(&mut url);
    context.output.message(format_args!(
        "Log in and authorize this program in your browser. If it does not open, open this URL:\n\n{url}\n\n\
         If the browser runs on another machine, press Ctrl-C and use `airlock user login --no-browser`"
    ))?;
    if let Err(error) = open::that_detached(url.as_str()) {
        context.output.message(format_args!("Cannot open a browser: {error}"))?;
    }
    let code = AuthorizationCode { code: loopback.code().await?, redirect_uri, verifier: Some(verifier) };
    finish(context, Client::Own, context.account()?.code_token(&client, code).await?).await
}

/// Returns true if there is a graphical display, and so probably a browser on this machine.
fn has_display() -> bool {
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some())
}

/// Prints the URL of the page that shows a code, and prompts for the code.
async fn with_page(context: &CommandContext) -> anyhow::Result<()> {
    let verifier = CodeVerifier::new(context.random.as_ref());
    let client = Client::Own.credentials()?;
    let url = context.account()?.authorize_url(&client.id, REDIRECT_URI, &verifier);
    let auth_server = context.auth_server().to_owned();
    context.files.set_pending_login(&PendingLogin { auth_server, verifier: verifier.secret().clone() })?;
    say(format_args!("Open this URL in a browser, log in, and authorize this program:\n\n{url}\n"))?;
    let answer = ask("Access code: ")?;
    match answer.parse() {
        Ok(LoginBy::Code(code)) => with_code(context, code).await,
        _ if answer.is_empty() => {
            bail!("not logged in yet: open the URL above, then run `airlock user login <code>` with the code")
        }
        _ => bail!(CommandError::invalid("this is not an access code: the page shows one with 38 characters")),
    }
}

/// Redeems a code: from the URL that was printed last, or else from the page "Access code" of the account site, which
/// issues codes to v2's command line.
pub(super) async fn with_code(context: &CommandContext, code: Secret) -> anyhow::Result<()> {
    let pending = context.files.pending_login()?.filter(|pending| pending.auth_server == context.auth_server());
    let Some(pending) = pending else {
        let redeemed = of_site(context, code).await?;
        return redeemed.context("get a new code with `airlock user login`, or at the account site");
    };
    let verifier = Some(CodeVerifier::from_secret(pending.verifier));
    let asked = AuthorizationCode { code: code.clone(), redirect_uri: REDIRECT_URI.to_owned(), verifier };
    match context.account()?.code_token(&Client::Own.credentials()?, asked).await {
        Ok(response) => finish(context, Client::Own, response).await?,
        Err(error) if error.kind() == Kind::Invalid => {
            of_site(context, code).await?.map_err(|_| refused_credential(error))?;
        }
        Err(error) => return Err(error.into()),
    }
    context.files.delete_pending_login()
}

/// Redeems a code from the page of the account site; the inner error if it is refused.
async fn of_site(context: &CommandContext, code: Secret) -> anyhow::Result<Result<(), Error>> {
    let code = AuthorizationCode { code, redirect_uri: SITE_REDIRECT_URI.to_owned(), verifier: None };
    match context.account()?.code_token(&Client::OfV2.credentials()?, code).await {
        Ok(response) => finish(context, Client::OfV2, response).await.map(Ok),
        Err(error) if error.kind() == Kind::Invalid => Ok(Err(refused_credential(error))),
        Err(error) => Err(error.into()),
    }
}

/// Saves the login.
async fn finish(context: &CommandContext, client: Client, response: TokenResponse) -> anyhow::Result<()> {
    let user = context.account()?.me(&Credential::Token(response.access_token.clone())).await?;
    let login = Login::new(context.auth_server(), (user.username, client), response, context.clock.as_ref());
    context.files.set_login(&login).context("logged in, but cannot save the login")?;
    context.output.message(format_args!("Logged in as {} ({})", login.username, sanitize(&user.email)))
}
