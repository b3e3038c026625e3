"""Random choices that are the same on every machine and with every Python.

Python guarantees only `random.Random(text).random()`. The standard library's choices changed between versions, so
this file makes its own.
"""
import random


class Rng:
    def __init__(self, seed):
        self.random = random.Random(str(seed)).random

    def randrange(self, n):
        return int(self.random() * n)

    def randint(self, low, high):
        return low + int(self.random() * (high - low + 1))

    def uniform(self, low, high):
        return low + self.random() * (high - low)

    def choice(self, items):
        return items[int(self.random() * len(items))]

    def choices(self, items, weights):
        """One item, in a list, drawn with integer weights."""
        x = int(self.random() * sum(weights))
        for item, w in zip(items, weights):
            x -= w
            if x < 0:
                return [item]
        raise ValueError("the weights are not positive integers")

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = int(self.random() * (i + 1))
            items[i], items[j] = items[j], items[i]

    def sample(self, items, count):
        pool = list(items)
        self.shuffle(pool)
        if count > len(pool):
            raise ValueError("more items asked for than there are")
        return pool[:count]
