//! Stand-ins for the network servers with which bridges work.

mod chirpstack;
mod things_stack;

pub use self::{
    chirpstack::{
        CHIRPSTACK_APPLICATION, CHIRPSTACK_APPLICATION_NAME, CHIRPSTACK_TENANT, CHIRPSTACK_TOKEN, ChirpStackApi,
        chirpstack_uplink, chirpstack_uplink_json,
    },
    things_stack::{THINGS_STACK_APPLICATION, THINGS_STACK_KEY, ThingsStackApi, things_stack_uplink},
};
