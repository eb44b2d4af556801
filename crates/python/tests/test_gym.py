"""The environment over the choice of repair."""

import unittest

import fulmar_lab as lab
import numpy
from fulmar_lab import gym
from gymnasium.utils.env_checker import check_env

FLOW = {"transport": "aerotp", "mode": "auto", "traffic": "messages", "size": "200B", "interval": "20ms", "deadline": "150ms", "bytes": "60kB"}


def messages(loss="10%", **flow):
    hop = {"rate": "5mbit", "delay": "30ms", "loss": loss}
    return lab.Scenario.build(run={"duration": "20s"}, hop=hop, flow=FLOW | flow)


class Gym(unittest.TestCase):
    def test_it_is_an_environment_as_gymnasium_has_them(self):
        check_env(gym.RepairEnv(messages()), skip_render_check=True)

    def test_equal_seeds_and_actions_give_equal_episodes(self):
        env = gym.RepairEnv(messages())

        def episode(seed):
            observation, _ = env.reset(seed=seed)
            told, over = [observation.tolist()], False
            while not over:
                observation, reward, over, _, info = env.step((4, 1, 2, 2))
                told.append((observation.tolist(), reward))
            return told, dict(info["run"])

        self.assertEqual(episode(4), episode(4))
        self.assertNotEqual(episode(4), episode(5))

    def test_a_run_that_the_agent_leaves_to_auto_is_autos(self):
        env = gym.RepairEnv(messages())
        env.reset(seed=3)
        over = False
        while not over:
            *_, over, _, info = env.step(None)
        self.assertEqual(dict(info["run"]), dict(messages().run(3)) | {name: info["run"][name] for name in ("flow.controller",) if name in info["run"]})

    def test_more_repair_is_worth_it_where_much_is_lost_and_not_where_nothing_is(self):
        plain, twice = gym.fixed_policy(), gym.fixed_policy(4, 2, 2, 2)
        lossy, clean = (gym.RepairEnv(messages(loss, overhead="100%")) for loss in ("30%", "0%"))
        self.assertGreater(gym.evaluate(lossy, twice, range(2)), gym.evaluate(lossy, plain, range(2)))
        self.assertLess(gym.evaluate(clean, twice, range(2)), gym.evaluate(clean, plain, range(2)))

    def test_a_run_that_is_given_up_ends(self):
        env = gym.RepairEnv(messages())
        env.reset(seed=1)
        worker = env._worker
        env.step((0, 1, 1, 1))
        env.close()
        self.assertFalse(worker.is_alive())
        with self.assertRaisesRegex(RuntimeError, r"call reset\(\)"):
            env.step((0, 1, 1, 1))

    def test_nothing_is_no_mean(self):
        with self.assertRaisesRegex(ValueError, "no step was made; give seeds"):
            gym.evaluate(gym.RepairEnv(messages()), gym.auto_policy(), seeds=[])

    def test_a_flow_without_a_goal_is_refused(self):
        with self.assertRaisesRegex(lab.ScenarioError, "chooses the repair for a goal"):
            gym.RepairEnv(messages(mode="reliable")).reset(seed=1)

    def test_what_is_seen_is_named(self):
        env = gym.RepairEnv(messages())
        observation, _ = env.reset(seed=1)
        self.assertEqual(observation.shape, (len(gym.OBSERVED),))
        self.assertTrue(numpy.all(observation >= 0))
        env.close()


if __name__ == "__main__":
    unittest.main()
