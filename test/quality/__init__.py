"""What ``scripts/coverage`` and ``scripts/mutate`` run: are the tests worth their time?"""
