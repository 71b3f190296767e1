//! Authentication: credentials, tokens and keys, and the account service that vouches for them.

mod authenticator;
mod component_token;
mod credentials;
mod fake_account;
mod identity;
mod local_account;
mod outages;
mod self_signed;
mod signer;
mod verifier;
