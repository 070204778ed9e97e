"""The plan: its keys, one line each, read from its YAML file, and its JSON Schema."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from synth_audit import registry
from synth_audit.dp.accountant import FitTerms
from synth_audit.dp.guarantee import Unit
from synth_audit.errors import PlanError, keys_of, problems_of
from synth_audit.files import Malformed, load_yaml, read_text
from synth_audit.plan import sections
from synth_audit.plugins.audit import Audit
from synth_audit.plugins.generator import Generator
from synth_audit.plugins.plugin_config import Location, PluginChoice, PluginConfig, combinations
from synth_audit.plugins.source import CONNECTION, ConnectionSpec, Source, without_transport
from synth_audit.table.rules import FORMS, Rule, parse_rules
from synth_audit.table.schema import RELEASED
from synth_audit.table.schema_inference import ColumnSpec

LONGEST_NAME = 200
"""Characters: file names made from it stay below the 255 bytes of common file systems."""

DEFAULT_GATES = "expectations/release.json"
"""The suite of a plan that names none. It decides on all criteria, with limits for any table."""

_TEMPLATE = re.compile(r"\{\{\s*env\b")
"""How a template begins that Dagster fills in; other braces may be text of the table."""


_PATH = {"type": "string", "pattern": r"[.][A-Za-z0-9]+$"}
"""JSON Schema of a file's path."""


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Listed = BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])


def _readable(texts: tuple[str, ...]) -> tuple[str, ...]:
    parse_rules(texts)
    return texts


class Plan(sections.Section):
    """Everything public that decides an audit. The same plan, data and salt give the same evidence."""

    name: str = Field(
        "table",
        pattern=r"^[\w.-]+$",
        max_length=LONGEST_NAME,
        description="what the report calls the table; the plan file's name if left out",
    )
    connections: dict[str, ConnectionSpec] = Field(
        default_factory=dict, description="servers by a name that `source` and `release` refer to"
    )
    source: Location | None = Field(None, description="where the sensitive table is")
    columns: dict[str, ColumnSpec] = Field(
        default_factory=dict, description="declared columns; the others are inferred and reported"
    )
    rules: Annotated[tuple[str, ...], _Listed, AfterValidator(_readable)] = Field(
        (), description=f"what every row obeys, beside bounds and categories: {FORMS}"
    )
    split: sections.SplitSpec = Field(default_factory=sections.SplitSpec)
    generator: PluginConfig | None = Field(None, description="what makes the synthetic table")
    privacy: sections.PrivacySpec | None = Field(
        None, description="privacy budget of the table; gates then hold the release to it"
    )
    rows: int | None = Field(None, gt=0, le=10**9, description="synthetic rows; as many as train if left out")
    coarsen: sections.CoarsenSpec | None = Field(
        None, description="how values are made coarser between the generator and the audit"
    )
    audits: tuple[PluginConfig, ...] = Field((), description="audits to run; the usual ones if left out")
    known_answer: sections.KnownAnswerSpec = Field(default_factory=sections.KnownAnswerSpec)
    gates: str = Field(DEFAULT_GATES, description="gate suite: a file, or a suite that ships with us")
    release: sections.ReleaseTarget | None = Field(
        None, description="where a passing synthetic table goes, and how many must approve first"
    )
    review: sections.ReviewSpec | None = Field(
        None, description="what the release is for and who answers for it, as the certificate says"
    )
    frontier: sections.FrontierSpec | None = Field(
        None, description="what `synth-audit frontier` tries; decides nothing in an audit of the plan itself"
    )
    execution: sections.ExecutionSpec = Field(
        default=sections.ExecutionSpec.model_validate({}),
        description="where the work is done; decides no measurement",
    )
    seed: int = Field(
        0, ge=0, description="moves the leaks that `synth-audit calibrate` plants; no audit and no release"
    )
    level: float = Field(0.95, ge=0.9, lt=1, description="confidence level of every interval")
    suppression: int = Field(10, ge=1, description="no smaller count is ever shown")

    _base: Path = PrivateAttr(default_factory=Path.cwd)

    @model_validator(mode="after")
    def _distinct_audits(self) -> "Plan":
        names = [choice.name for choice in self.audits]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"audit {twice[0]!r} is listed more than once")
        return self

    @model_validator(mode="after")
    def _rules_on_released_columns(self) -> "Plan":
        for rule in self.stated_rules:
            for name in rule.columns:
                if name in self.columns and not RELEASED.issuperset(self.columns[name].roles):
                    raise ValueError(f"the rule {rule.text!r} names column {name!r}, which is never released")
        return self

    @property
    def stated_rules(self) -> tuple[Rule, ...]:
        """The rules under ``rules``, read; bounds and categories of columns are rules as well."""
        return parse_rules(self.rules)

    @property
    def fit_terms(self) -> FitTerms:
        """What a generator may spend; nothing when the plan declares no budget."""
        if self.privacy is None:
            return FitTerms(total=None, fit=None, unit=Unit.ROW, drawn=self.rows)
        return self.privacy.terms(self.rows)

    @property
    def corrected_level(self) -> float:
        """The level of every interval, ``1 − (1 − level) / tries``: to choose is to have chances of a wrong
        pass (Bonferroni)."""
        tries = self.coarsen.tries if self.coarsen else 1
        return self.level if tries == 1 else 1 - (1 - self.level) / tries

    @property
    def most_reports(self) -> int | None:
        """Reports of mostly the same people that may be made; None for any number."""
        return self.review.reports if self.review else None

    @property
    def base(self) -> Path:
        """The folder that relative paths start from: the plan file's, else the working folder."""
        return self._base

    @property
    def digest(self) -> str:
        """SHA-256 of the normalised plan; where the file lies does not matter, nor its layout."""
        text = json.dumps(self.plain(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def plain(self) -> dict[str, Any]:
        """The plan as JSON values, as it stands in the evidence.

        Without ``frontier``, which chooses among plans and decides nothing in any of them, and ``execution``,
        which says where the work is done; and without transport, which says how the tables are reached.
        """
        return without_transport(
            self.model_dump(
                mode="json", by_alias=True, exclude_defaults=True, exclude={"frontier", "execution"}
            )
        )

    def build_source(self) -> Source:
        """The configured source; raises ``PlanError`` when the plan has none."""
        source: Source = self._build("source", self.source, "source")
        return source

    def build_generator(self) -> Generator:
        """The configured generator; raises ``PlanError`` when the plan has none."""
        generator: Generator = self._build("generator", self.generator, "generator")
        return generator

    def build_release(self) -> Source:
        """The configured target; raises ``PlanError`` when the plan has none."""
        target: Source = self._build("source", self.release, "release")
        return target

    def build_audits(self) -> dict[str, Audit]:
        """Every configured audit by name; all that run by default when the plan lists none."""
        return _audits(self.audits or tuple(PluginChoice(name=n) for n in registry.default_audits()))

    def check(self) -> "Plan":
        """Build every plug-in the plan names, so that mistakes show before any data is read.

        Raises:
            PlanError: naming every mistake.
        """
        if mistakes := self.mistakes():
            raise PlanError.joined(mistakes, "plan")
        return self

    def mistakes(self) -> list[PlanError]:
        """What plug-ins refuse of the settings that the plan has for them.

        The usual audits are not built here: nobody has set anything of theirs.
        """
        parts = [getattr(self, f"build_{p}") for p in ("source", "generator", "release") if getattr(self, p)]
        parts += [partial(_audits, (choice,)) for choice in self.audits]
        parts += [partial(self._build, "generator", choice, where) for where, choice in self._candidates()]
        found = []
        for build in parts:
            try:
                build()
            except PlanError as error:
                found.append(error)
        return found

    def _candidates(self) -> Iterator[tuple[str, PluginChoice]]:
        """Every generator that ``frontier`` names, and where; what it tries unasked depends on the table."""
        if self.frontier is None:
            return
        if self.generator is not None and self.frontier.vary:
            for varied in combinations(self.frontier.vary):
                yield "frontier.vary", self.generator.with_settings(varied)
        for choice in self.frontier.generators:
            yield "frontier.generators", choice

    def located(self, base: Path) -> "Plan":
        """The same plan with relative paths starting at ``base``."""
        plan = self.model_copy()
        plan._base = base
        return plan

    def _build(self, room: registry.PluginGroup, choice: PluginChoice | None, key: str) -> Any:
        if choice is None:
            raise PlanError(
                f"the plan has no {key}",
                where=key,
                expected=f"`{key}: ...`",
                fix="`synth-audit init` writes a plan to start from",
            )
        where = f"{key}.{choice.name}"
        config = self._connected(choice.config, where) if room == "source" else choice.config
        return registry.build(room, choice.name, config, where=where)

    def _connected(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Settings of a source with what its connection's name stands for."""
        name = config.get(CONNECTION)
        if name is None:
            return config
        if not isinstance(name, str) or name not in self.connections:
            raise PlanError(
                "there is no such connection",
                where=f"{where}.{CONNECTION}",
                expected=f"one of {', '.join(self.connections)}" if self.connections else "`connections:`",
                fix="describe the server under `connections` in the plan, and name it here",
            )
        return {**config, CONNECTION: self.connections[name]}


def _audits(choices: Iterable[PluginChoice]) -> dict[str, Audit]:
    return {c.name: registry.build("audit", c.name, c.config, where=f"audits.{c.name}") for c in choices}


def plan_schema() -> dict[str, Any]:
    """JSON Schema of the plan, with the configuration of every plug-in that is installed."""
    schema = Plan.model_json_schema(by_alias=True)
    rooms: dict[registry.PluginGroup, tuple[str, ...]] = {
        "source": ("source", "release"),
        "generator": ("generator",),
        "audit": ("audits",),
    }
    for room, keys in rooms.items():
        configs = {name: registry.config_schema(ref) for name, ref in registry.catalogue(room).items()}
        for config in configs.values():  # a reference is looked up at the root, not where it stands
            schema["$defs"] |= config.pop("$defs", {})
        variants: list[dict[str, Any]] = [
            {
                "type": "object",
                "properties": {name: {"anyOf": [config, {"type": "null"}]}},
                "required": [name],
                "additionalProperties": False,
            }
            for name, config in configs.items()
        ]
        # A plug-in without settings: its name, or the path of a file that it reads.
        words = [{"enum": list(configs)}, *([_PATH] if room == "source" else [])]
        schema["$defs"][f"{room}_plugin"] = {"anyOf": [*variants, *words]}
        for key in keys:
            link = {"$ref": f"#/$defs/{room}_plugin"}
            old = schema["properties"][key]
            new = {"type": "array", "items": link} if key == "audits" else link
            schema["properties"][key] = {k: old[k] for k in ("description",) if k in old} | new
    schema["$defs"]["release_plugin"] = _release_plugin(schema["$defs"])
    schema["properties"]["release"]["$ref"] = "#/$defs/release_plugin"
    listed = schema["$defs"]["FrontierSpec"]["properties"]["generators"]
    listed["items"] = {"$ref": "#/$defs/generator_plugin"}
    kind = schema["$defs"]["ColumnSpec"]["properties"]["kind"]
    kind["anyOf"] = [{"enum": list(registry.catalogue("kind"))}, {"type": "null"}]
    schema["$defs"].pop("PluginChoice", None)
    return schema


def _release_plugin(defs: dict[str, Any]) -> dict[str, Any]:
    """A target as a source, and beside its settings whose approval it waits for."""
    own = {k: v for k, v in defs.pop("ReleaseChoice")["properties"].items() if k not in ("name", "config")}
    named = [v for v in defs["source_plugin"]["anyOf"] if "properties" in v]
    variants = [{**v, "properties": {**v["properties"], **own}} for v in named]
    return {"anyOf": [*variants, *(v for v in defs["source_plugin"]["anyOf"] if "properties" not in v)]}


def load_plan(path: Path | str) -> Plan:
    """Read and validate a plan file, plug-ins included.

    Raises:
        PlanError: the file is missing, is no YAML mapping, or does not validate.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise PlanError(
            f"the plan cannot be read ({type(error).__name__})",
            where=str(path),
            expected="a YAML file in UTF-8",
            fix="check the path, or start one with `synth-audit init`",
        ) from None
    try:
        value = load_yaml(text)
    except Malformed as error:
        raise PlanError(
            "the plan is not valid YAML" + (f": {error.reason}" if error.reason else ""),
            where=f"{path}, line {error.line}" if error.line else str(path),
            expected="a YAML mapping without doubled keys",
            fix="put text in quotes that begins with a sign, such as a rule that begins with a backtick",
        ) from None
    if isinstance(value, Mapping):
        value = {"name": re.sub(r"[^\w.-]", "_", path.stem)[:LONGEST_NAME]} | dict(value)
    return parse_plan(value, where=str(path)).located(path.resolve().parent).check()


def parse_plan(value: object, *, where: str = "plan") -> Plan:
    """Validate a plan given as plain values, without building its plug-ins.

    Raises:
        PlanError: naming every key that is wrong, those of plug-ins too.
    """
    if not isinstance(value, Mapping):
        raise PlanError(
            "the plan is not a mapping",
            where=where,
            expected="`key: value` lines",
            fix="`synth-audit init` writes a plan to start from",
        )
    unfilled = [
        PlanError(
            "a template is not filled in, which only Dagster does",
            where=key,
            expected="the value itself",
            fix="write the value, or put it in a `defs.yaml`; "
            "passwords belong under a connection's `secrets`",
        )
        for key in _templates(value)
    ]
    if unfilled:
        raise PlanError.joined(unfilled, where)
    rest, mistakes = dict(value), list[PlanError]()
    while True:
        plan, found, wrong = _read(rest, where)
        mistakes += found
        kept = {key: rest[key] for key in rest if key not in wrong}
        if plan is not None or len(kept) == len(rest):
            break
        rest = kept
    if plan is not None and not mistakes:
        return plan
    # What is left may hold more mistakes, which are told together.
    raise PlanError.joined([*mistakes, *(plan.mistakes() if plan else ())], where)


def _templates(value: object, where: str = "") -> Iterator[str]:
    """Keys of values that hold a template; taken literally, it would name a file or a server."""
    match value:
        case str() if _TEMPLATE.search(value):
            yield where
        case Mapping():
            for key, inner in value.items():
                yield from _templates(inner, f"{where}.{key}".lstrip("."))
        case list() | tuple():
            for i, inner in enumerate(value):
                yield from _templates(inner, f"{where}.{i}")


def _read(value: dict[str, object], where: str) -> tuple[Plan | None, list[PlanError], set[str]]:
    """The plan, or what is wrong with it and the keys that hold the mistakes."""
    try:
        return Plan.model_validate(value), [], set()
    except PlanError as error:  # of a rule or a source, which say more than pydantic does
        return None, [error], {error.where.partition(".")[0]}
    except ValidationError as error:
        found = PlanError(
            problems_of(error, Plan),
            where=where,
            expected=keys_of(error, Plan) or "what the plan's JSON Schema allows",
            fix="`synth-audit schema` prints the plan's JSON Schema; `synth-audit init` writes an example",
        )
        return None, [found], {str(e["loc"][0]) for e in error.errors() if e["loc"]}
