"""Chat rows and pairs are trained on, by TRL itself: one step of a tiny model with a tokenizer and a template made here."""

from pathlib import Path
from typing import Any

import pytest

from agent_gym.evaluation import evaluate
from agent_gym.trajectories import TrajectoryStore
from agent_gym.trajectories.export import export
from tests.trajectories.counting import ENV_ID, CountingPolicy

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
tokenizers = pytest.importorskip("tokenizers")
TEMPLATE = """\
{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}
{%- for message in messages %}<{{ message.role }}>{{ message.content }}
{%- for call in message.tool_calls or [] %}<call>{{ call.function.name }} {{ call.function.arguments }}</call>{% endfor -%}
</{{ message.role }}>
{%- endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}"""

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TrajectoryStore:
    """Ten episodes that succeed and, of the same tasks and seeds, ten that do not."""
    kept = TrajectoryStore(tmp_path_factory.mktemp("store"))
    for wrong in (frozenset[int](), frozenset(range(5))):
        evaluate(CountingPolicy(wrong), ENV_ID, tasks="even,odd", store=kept)
    return kept


@pytest.fixture
def rows(store: TrajectoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What loads the rows of an export."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face datasets: pip install datasets")

    def loaded(form: str, **which: Any) -> Any:
        out = tmp_path / f"{form}.jsonl"
        export(store, form, out, **which)
        return datasets.load_dataset("json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))

    return loaded


@pytest.fixture
def tokenizer(store: TrajectoryStore) -> Any:
    raw = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=None))
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=1_000, initial_alphabet=alphabet, special_tokens=["<pad>", "<eos>"])
    texts = (step["obs_text"] for row in store.episodes() for step in store.steps(row["episode_id"]))
    raw.train_from_iterator(texts, trainer)
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>")
    made.chat_template = TEMPLATE
    return made


def model(tokenizer: Any, kind: str = "Qwen2ForCausalLM", **keywords: Any) -> Any:
    size: dict[str, int] = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    config = transformers.Qwen2Config(vocab_size=len(tokenizer), **size, **heads, pad_token_id=tokenizer.pad_token_id, **keywords)
    return getattr(transformers, kind)(config)


def settings(folder: Path, **keywords: Any) -> dict[str, Any]:
    common = {"max_steps": 1, "per_device_train_batch_size": 2, "use_cpu": True, "bf16": False, "report_to": "none", "save_strategy": "no"}
    return {"output_dir": str(folder), **common, **keywords}


def test_a_chat_template_is_applied(rows: Any, tokenizer: Any) -> None:
    for row in rows("chat"):
        text = tokenizer.apply_chat_template(row["messages"], tools=row["tools"], tokenize=False)
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
        for message in row["messages"]:
            assert message["content"] in text
            for call in message.get("tool_calls") or ():
                assert f"{call['function']['name']} {call['function']['arguments']}</call>" in text
        assert all(f'"name": "{tool["function"]["name"]}"' in text for tool in row["tools"])


def test_supervised_fine_tuning(rows: Any, tokenizer: Any, tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason="needs TRL: pip install trl")
    arguments = trl.SFTConfig(**settings(tmp_path / "run", max_length=None))
    data = rows("chat", where="success")
    trainer = trl.SFTTrainer(model(tokenizer), args=arguments, train_dataset=data, processing_class=tokenizer)
    seen = tokenizer.decode(trainer.train_dataset[0]["input_ids"])
    assert seen.removesuffix("<eos>") == tokenizer.apply_chat_template(data[0]["messages"], tools=data[0]["tools"], tokenize=False)
    assert trainer.train().training_loss > 0


@pytest.mark.parametrize("level", ["episode", "step"])
def test_preference_optimisation(rows: Any, tokenizer: Any, tmp_path: Path, level: str) -> None:
    trl = pytest.importorskip("trl", reason="needs TRL: pip install trl")
    data = rows("preferences", level=level)
    arguments = trl.DPOConfig(**settings(tmp_path / "dpo", max_length=None))
    trainer = trl.DPOTrainer(model(tokenizer), ref_model=model(tokenizer), args=arguments, train_dataset=data, processing_class=tokenizer)
    assert trainer.train().training_loss > 0
    arguments = trl.RewardConfig(**settings(tmp_path / "reward", max_length=None))
    scorer = model(tokenizer, "Qwen2ForSequenceClassification", num_labels=1)
    trainer = trl.RewardTrainer(scorer, args=arguments, train_dataset=data, processing_class=tokenizer)
    assert trainer.train().training_loss > 0
