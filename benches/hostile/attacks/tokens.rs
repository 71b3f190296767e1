//! Row 20: a stranger sends tokens whose signatures are wrong, each another one.

use crate::{
    attack::Attack,
    requests::{Requests, request},
    server_process::ServerProcess,
};

const CONNECTIONS: usize = 64;
/// Number of base64 characters in the signature.
const SIGNATURE: usize = 86;

pub(crate) const ATTACK: Attack = Attack {
    has_busy_neighbour: true,
    ..Attack::new(20, "wrong tokens, 64 at once", |server| {
        Box::pin(async {
            let application = server.create_application("tokens", ServerProcess::demo_functions()).await;
            let token = application.token.expose().to_owned();
            let signed = token[..token.len() - SIGNATURE].to_owned();
            let wrong = move |number| {
                let token = format!("Bearer {signed}{number:0SIGNATURE$}");
                request("GET", "/applications/tokens/devices", &token, "")
            };
            Requests::new(server.handler, CONNECTIONS, wrong).attacker()
        })
    })
};
