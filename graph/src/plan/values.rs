//! What expressions read while a plan is expanded: loop variables, symbols, slots.

use super::layout::limits;

/// Loop variables.
pub(super) type Vars = [i64; limits::VARS];

/// The values. Places that a plan does not have are zero; the plan was checked.
pub(super) struct Values {
    vars: Vars,
    symbols: [u64; limits::SYMBOLS],
    slots: [u64; limits::SLOTS as usize],
}

impl Values {
    pub(super) const fn new(symbols: [u64; limits::SYMBOLS]) -> Self {
        Self { vars: [0; limits::VARS], symbols, slots: [0; limits::SLOTS as usize] }
    }

    #[inline]
    pub(super) fn var(&self, number: u32) -> i64 {
        self.vars.get(number as usize).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn set_var(&mut self, number: u32, value: i64) {
        if let Some(var) = self.vars.get_mut(number as usize) {
            *var = value;
        }
    }

    /// Takes the variables of another process.
    pub(super) const fn swap_vars(&mut self, vars: &mut Vars) {
        core::mem::swap(&mut self.vars, vars);
    }

    #[inline]
    pub(super) fn symbol(&self, number: u32) -> u64 {
        self.symbols.get(number as usize).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn slot(&self, number: u32) -> u64 {
        self.slots.get(number as usize).copied().unwrap_or(0)
    }

    pub(super) fn set_slot(&mut self, number: u32, value: u64) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            *slot = value;
        }
    }
}
