//! What a run may spend and has spent: accounts of the run, of nested files and of nodes with a budget.
//!
//! Owns ceilings, reservations and their sums. Pure but for the handle; must not know steps, tasks or models.

mod accounts;
mod core;
mod handle;
mod past;
mod words;

pub use self::core::{Account, AccountIx, Accounts, Amount, Ceiling, Held, Spender, Verdict};
pub use handle::{Ledger, LedgerNews};
