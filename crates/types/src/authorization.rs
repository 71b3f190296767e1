//! Who may do what: credentials, the claims of tokens, and rights.

mod claims;
mod credential;
mod grant;
mod right;
mod scope;

pub use self::{
    claims::{Claims, FullName},
    credential::{ACCESS_KEY_BYTES_MAX, AccessKey, CREDENTIAL_BYTES_MAX, Credential, CredentialError, Secret},
    grant::Grant,
    right::{ApplicationRight, ComponentRight, GatewayRight, UnknownRight},
    scope::{Scope, ScopeError},
};
