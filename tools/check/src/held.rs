//! Links of a chain for a builder: what they borrow, where tensors are now.

use pto_abi::chain::Turns;
use pto_abi::{CoreKind, FuncId};
use pto_graph::{Arg, Link, TensorView, Variation};

use crate::program::{Argument, ChainLink, Task, View, Way};

/// A link as a builder wants it: what it borrows.
pub(crate) struct Held {
    func: FuncId,
    kind: CoreKind,
    times: u32,
    with_next: bool,
    args: Vec<(Argument, TensorView<'static>)>,
    columns: Vec<(usize, Turns, Result<i64, Vec<u64>>)>,
}

impl Held {
    /// Links of a task. `view` gives a part of a tensor where it is now.
    pub(crate) fn of<E>(
        task: &Task,
        view: impl Fn(&View) -> Result<TensorView<'static>, E>,
    ) -> Result<Vec<Self>, E> {
        task.links.iter().map(|link| Self::of_link(link, task.kind, &view)).collect()
    }

    fn of_link<E>(
        link: &ChainLink,
        kind: CoreKind,
        view: &impl Fn(&View) -> Result<TensorView<'static>, E>,
    ) -> Result<Self, E> {
        let mut args = Vec::new();
        for arg in &link.args {
            let held = arg.view().map(|(of, _)| view(of)).transpose()?;
            args.push((arg.clone(), held.unwrap_or_default()));
        }
        let mut columns = Vec::new();
        for vary in &link.vary {
            let tensor = link.args.get(vary.arg).is_some_and(|arg| arg.view().is_some());
            let base = args.get(vary.arg).filter(|_| tensor).map_or(0, |(_, view)| view.base().0);
            let way = match &vary.way {
                Way::By(step) => Ok(*step),
                Way::Of(words) => Err(words.iter().map(|word| word.wrapping_add(base)).collect()),
                Way::At(bytes) => {
                    let views = bytes.iter().filter_map(|byte| byte.view());
                    let address = |of: View| Ok(view(&of)?.address().0);
                    Err(views.map(address).collect::<Result<_, E>>()?)
                }
            };
            columns.push((vary.arg, vary.turns, way));
        }
        let (func, times, with_next) = (FuncId(link.func), link.times, link.with_next);
        Ok(Self { func, kind, times, with_next, args, columns })
    }

    /// The arguments and the variations.
    pub(crate) fn parts(&self) -> (Vec<Arg<'_>>, Vec<Variation<'_>>) {
        let args = self.args.iter().map(|(arg, view)| argument(arg, view));
        let varies = self.columns.iter().map(|(arg, turns, way)| {
            let variation = match way {
                Ok(step) => Variation::by(*arg, *step),
                Err(words) => Variation::of(*arg, words),
            };
            variation.in_turns(*turns)
        });
        (args.collect(), varies.collect())
    }

    /// The link of these parts.
    pub(crate) fn link<'l>(
        &self,
        (args, varies): &'l (Vec<Arg<'l>>, Vec<Variation<'l>>),
    ) -> Link<'l> {
        let link = Link::on_tensors(self.func, self.kind, args).times(self.times).varying(varies);
        if self.with_next { link.with_next() } else { link }
    }
}

/// An argument for a builder.
pub(crate) fn argument<'a>(arg: &Argument, view: &'a TensorView<'static>) -> Arg<'a> {
    match arg {
        Argument::In(_) => Arg::In(view),
        Argument::Out(_) => Arg::Out(view),
        Argument::InOut(_) => Arg::InOut(view),
        Argument::NoDep(..) => Arg::NoDep(view),
        Argument::Scalar(word) => Arg::Scalar(*word),
        Argument::BoundScalar(number) => Arg::BoundScalar(*number),
    }
}
