//! Lists of small numbers, one after another in one array: what belongs to each vertex, made and given back at once.

use std::ops::Index;

/// Lists of `u32`; list `i` is `lists[i]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists {
    /// List i is `items[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    items: Vec<u32>,
}

impl Lists {
    /// None yet, with room for so many and their items.
    pub fn with_capacity(lists: usize, items: usize) -> Self {
        let mut starts = Vec::with_capacity(lists + 1);
        starts.push(0);
        Self { starts, items: Vec::with_capacity(items) }
    }

    /// How many lists there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lists, one after another.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u32]> + ExactSizeIterator {
        self.starts.windows(2).map(|ends| &self.items[ends[0]..ends[1]])
    }

    /// Adds a list.
    pub fn push(&mut self, list: impl IntoIterator<Item = u32>) {
        self.items.extend(list);
        self.starts.push(self.items.len());
    }

    /// Changes the items of each list.
    pub fn change(&mut self, mut change: impl FnMut(&mut [u32])) {
        self.starts.windows(2).for_each(|ends| change(&mut self.items[ends[0]..ends[1]]));
    }
}

impl Index<usize> for Lists {
    type Output = [u32];

    #[inline]
    fn index(&self, i: usize) -> &[u32] {
        &self.items[self.starts[i]..self.starts[i + 1]]
    }
}

impl<L: IntoIterator<Item = u32>> FromIterator<L> for Lists {
    fn from_iter<T: IntoIterator<Item = L>>(lists: T) -> Self {
        let mut all = Self::with_capacity(0, 0);
        lists.into_iter().for_each(|list| all.push(list));
        all
    }
}
