//! The handler's operations over gRPC, as v2 clients call them.

mod addresses;
mod applications;
mod call;
mod joins;
mod status;

pub(super) use self::{
    addresses::DevAddrService, applications::ApplicationService, joins::JoinService, status::StatusService,
};
